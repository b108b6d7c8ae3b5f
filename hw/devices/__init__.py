"""Where experts are copied to and from: CUDA, a disk, an emulated link.

`base.py` says what a device is, `choose.py` opens one by its name. In all three `transfer_queue.py` decides the order,
`workers.py` runs the threads and a mover (`mover.py`) moves the bytes. Importing any of this imports neither torch nor
CUDA.
"""

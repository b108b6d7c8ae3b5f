"""Where experts are copied to and from: CUDA, a disk, an emulated link."""

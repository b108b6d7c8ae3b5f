"""The pure core: contract, scheduler, policies, costs and the simulated world.

Nothing here imports torch, scipy, plotting or any other part of hideaway; SimPy is used only in
`hideaway.sim.world`.
"""

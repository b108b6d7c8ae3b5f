"""What a simulation is fed with: models, hardware profiles, arrivals, routing, acceptance, scenarios."""

"""The sampled loop: plant, sensors, actuators, controllers, references and what is measured on responses."""

"""Training on an accelerator: data that lies there, steps that are replayed, nobody waiting within an epoch.

:class:`bimp.device.run.DeviceRun` takes the place of the plain loops of :mod:`bimp.engine`, at equal results.
"""

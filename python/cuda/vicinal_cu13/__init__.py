"""The CUDA plug-in of vicinal, which vicinal finds without importing this package."""

"""Where vicinal answers in the place of scikit-learn's private functions. Nothing here is imported by `import vicinal`.

registry: which hooks there are, who uses them, and what they did. neighbors, trees, clusters, embedding, workers: the
hooks. engine: scikit-learn's arguments as calls of vicinal.
"""

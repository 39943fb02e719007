"""A graph that changes, served over HTTP: the journal, the service, its pages."""

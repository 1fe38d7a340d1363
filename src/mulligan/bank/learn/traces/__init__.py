"""Traces of agents: spans and events in OpenTelemetry's conventions for generative AI, or in OpenInference's."""

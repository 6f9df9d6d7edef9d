"""From a policy to the settings of an engine, and back."""

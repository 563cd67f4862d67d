"""The registrations that a PrivateUse1 backend should have, and which of them a backend lacks."""

TORCH: str
COMPILER: str
COMMIT: str
BUILD: str  # release, or the sanitizer it is for
SANITIZE: str  # what -fsanitize was given

"""What made the language model, and what only measures on a lent card. Linted and tested; no part of the wheel."""

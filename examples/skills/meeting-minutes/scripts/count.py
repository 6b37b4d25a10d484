"""Count the words of the arguments."""

import sys

print(sum(len(text.split()) for text in sys.argv[1:]))

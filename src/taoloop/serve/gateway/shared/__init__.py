"""What the processes of a gateway share in a database: managed keys with their audit log, and what keys have used."""

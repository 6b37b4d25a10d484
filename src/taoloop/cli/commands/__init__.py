"""The commands of `tao`: one module each, loaded when the command is called."""

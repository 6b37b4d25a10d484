"""What models of providers share: transport, streams, replies, errors."""

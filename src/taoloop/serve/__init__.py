"""taoloop for others: its tools and agents behind protocols that they speak."""

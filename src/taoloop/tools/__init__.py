"""Tools: cards with the code behind them, built in or from elsewhere."""

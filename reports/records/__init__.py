"""What a study left in its folder, as it is read: its plan, its trials, and the search behind them."""

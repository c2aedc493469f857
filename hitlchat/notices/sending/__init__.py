"""Getting notices to their receivers: claimed, tried, tried again, given up. Knows nothing of what they say."""

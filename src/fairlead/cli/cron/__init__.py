"""arena cron."""

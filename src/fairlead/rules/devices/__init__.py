"""Attribution: whose name stands on the series of a device."""

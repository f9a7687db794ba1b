"""What will stand in the way of an export, found without exporting."""

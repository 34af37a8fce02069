"""Redis: lists and sorted sets, in the app layout or Laravel's."""

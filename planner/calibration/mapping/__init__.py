"""From a measured row to a job, a cluster and a layout."""

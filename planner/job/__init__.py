"""From a spec to a job with everything looked up."""

"""What is asked and answered: pure, frozen data that cannot exist invalid."""

"""Amazon SQS, standard and FIFO."""

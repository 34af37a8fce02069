module subject

go 1.22

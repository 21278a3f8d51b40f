#error "plumb's headers took a file of the user's for their own"

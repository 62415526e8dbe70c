"""What makes an engine of a server elsewhere: connections, the dialects of servers, and their replies."""

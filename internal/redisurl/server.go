package redisurl

// Server is one server, and the user and the database there.
type Server struct {
	// Network and Addr are as for net.Dial: host:port, or the path of a socket.
	Network, Addr string
	// User and Password are empty where the server asks for none.
	User, Password string
	// DB is the number of the database.
	DB int
}

// Server returns the server at the address of one server or of a Unix socket.
func (a *Address) Server() Server {
	if a.Kind == Socket {
		s := a.At(a.Path)
		s.Network = "unix"
		return s
	}
	return a.At(a.Hosts[0])
}

// At returns the server at addr, host:port, with the credentials and the database of a.
func (a *Address) At(addr string) Server {
	user, password, _ := a.Credentials() // those who need them have checked them
	return Server{Network: "tcp", Addr: addr, User: user, Password: password, DB: a.DB}
}

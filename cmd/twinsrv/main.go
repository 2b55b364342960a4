// Command twinsrv serves pods of entities over HTTP.
package main

import "github.com/twinsrv/twinsrv/server"

func main() { server.Main() }

module github.com/twinsrv/twinsrv/bench

go 1.26.0

replace github.com/twinsrv/twinsrv => ../

require (
	github.com/stretchr/testify v1.12.1
	github.com/twinsrv/twinsrv v0.0.0
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

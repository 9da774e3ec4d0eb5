module fakegpufs/clients

go 1.25.0

require (
	github.com/NVIDIA/go-nvml v0.13.4-0
	github.com/opencontainers/runtime-spec v1.3.0
	google.golang.org/grpc v1.79.3
	k8s.io/kubelet v0.35.4
	tags.cncf.io/container-device-interface v1.1.1
)

require (
	github.com/fsnotify/fsnotify v1.7.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.48.0 // indirect
	golang.org/x/sys v0.39.0 // indirect
	golang.org/x/text v0.32.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/protobuf v1.36.10 // indirect
	tags.cncf.io/container-device-interface/specs-go v1.1.1 // indirect
)

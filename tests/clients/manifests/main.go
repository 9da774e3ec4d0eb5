// Manifests as Kubernetes would take them.
//
//	manifests kustomize DIRECTORY                what `kustomize build` prints
//	manifests helm CHART [VALUES.yaml]           what `helm template` prints
//	manifests check < FILE                       decodes each document strictly into its type
//	manifests same FILE FILE                     whether two files have the same objects
//
// Types are those of k8s.io/api and of the Prometheus operator: a field that there is not, a value of another type or a kind
// that nobody knows is a line on standard error and exit code 1. Building is done by the packages that the two programs are
// made of.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	scraping "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// documents are the parts of a stream that are not empty.
func documents(r io.Reader) ([][]byte, error) {
	var all [][]byte
	reader := yaml.NewDocumentDecoder(io.NopCloser(r))
	defer reader.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		// The line end before a separator is part of the document, too.
		document := append(bytes.Clone(buffer[:n]), '\n')
		json, err := yaml.ToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(json) != "null" {
			all = append(all, document)
		}
	}
}

func decoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, autoscaling.AddToScheme, batch.AddToScheme,
		core.AddToScheme, networking.AddToScheme, policy.AddToScheme, rbac.AddToScheme, monitoring.AddToScheme,
		scraping.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), nil
}

func check(r io.Reader) error {
	decode, err := decoder()
	if err != nil {
		return err
	}
	all, err := documents(r)
	if err != nil {
		return err
	}
	var wrong []error
	for _, document := range all {
		_, kind, err := decode.Decode(document, nil, nil)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		fmt.Println(kind.Kind)
	}
	return errors.Join(wrong...)
}

// objects of a file, by kind, namespace and name.
func objects(name string) (map[string]any, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := documents(file)
	if err != nil {
		return nil, err
	}
	named := map[string]any{}
	for _, document := range all {
		object := map[string]any{}
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		meta, _ := object["metadata"].(map[string]any)
		named[fmt.Sprint(object["kind"], " ", meta["namespace"], "/", meta["name"])] = object
	}
	return named, nil
}

func same(first, second string) error {
	a, err := objects(first)
	if err != nil {
		return err
	}
	b, err := objects(second)
	if err != nil {
		return err
	}
	var wrong []string
	for name := range a {
		if _, ok := b[name]; !ok {
			wrong = append(wrong, name+" is not in "+second)
		} else if !reflect.DeepEqual(a[name], b[name]) {
			wrong = append(wrong, fmt.Sprintf("%s differs:\n%v\n%v", name, a[name], b[name]))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			wrong = append(wrong, name+" is not in "+first)
		}
	}
	sort.Strings(wrong)
	if len(wrong) > 0 || len(a) == 0 {
		return errors.New(strings.Join(append(wrong, fmt.Sprint(len(a), " objects")), "\n"))
	}
	return nil
}

func kustomize(directory string) error {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		return err
	}
	text, err := built.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

func helm(directory string, files []string) error {
	chart, err := loader.Load(directory)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	given := chartutil.Values{}
	for _, file := range files {
		if given, err = chartutil.ReadValuesFile(file); err != nil {
			return err
		}
	}
	release := chartutil.ReleaseOptions{Name: "fakegpufs", Namespace: "gpu-monitoring", IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return err
	}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			fmt.Printf("---\n# Source: %s\n%s\n", name, text)
		}
	}
	return nil
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "check":
		return check(os.Stdin)
	case len(arguments) == 3 && arguments[0] == "same":
		return same(arguments[1], arguments[2])
	case len(arguments) == 2 && arguments[0] == "kustomize":
		return kustomize(arguments[1])
	case len(arguments) >= 2 && arguments[0] == "helm":
		return helm(arguments[1], arguments[2:])
	}
	return errors.New("usage: manifests kustomize|helm|check|same …")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

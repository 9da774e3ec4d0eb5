// The receiver of the OpenTelemetry collector, as it is, with a consumer that prints what arrives:
//
//	otlp ADDRESS
//
// For each point `name{key="value",…} value`, after a line `resource key="value",…` for each request. Says
// `listening` first.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func labels(attributes pcommon.Map) string {
	var pairs []string
	for key, value := range attributes.All() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", key, value.Str()))
	}
	sort.Strings(pairs)
	return strings.Join(pairs, ",")
}

func number(point pmetric.NumberDataPoint) string {
	switch {
	case point.Flags().NoRecordedValue():
		return "none"
	case point.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return strconv.FormatInt(point.IntValue(), 10)
	default:
		return strconv.FormatFloat(point.DoubleValue(), 'g', -1, 64)
	}
}

func show(metric pmetric.Metric) {
	var points pmetric.NumberDataPointSlice
	kind := "gauge"
	if metric.Type() == pmetric.MetricTypeSum {
		points = metric.Sum().DataPoints()
		kind = fmt.Sprintf("counter monotonic=%t %s", metric.Sum().IsMonotonic(), metric.Sum().AggregationTemporality())
	} else {
		points = metric.Gauge().DataPoints()
	}
	fmt.Printf("type %s %s\n", metric.Name(), kind)
	fmt.Printf("help %s %s\n", metric.Name(), metric.Description())
	for _, point := range points.All() {
		fmt.Printf("%s{%s} %s\n", metric.Name(), labels(point.Attributes()), number(point))
	}
}

func take(_ context.Context, metrics pmetric.Metrics) error {
	for _, resource := range metrics.ResourceMetrics().All() {
		fmt.Printf("resource %s\n", labels(resource.Resource().Attributes()))
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				show(metric)
			}
		}
	}
	fmt.Println("end")
	return nil
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	err := confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": os.Args[1]}},
	}).Unmarshal(config)
	if err != nil {
		log.Fatal(err)
	}
	sink, err := consumer.NewMetrics(take)
	if err != nil {
		log.Fatal(err)
	}
	receiver, err := factory.CreateMetrics(ctx, receivertest.NewNopSettings(factory.Type()), config, sink)
	if err != nil {
		log.Fatal(err)
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening")
	<-ctx.Done()
	if err := receiver.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}

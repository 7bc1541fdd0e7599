// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.micrometer;

import dev.gantry.core.Metrics;
import dev.gantry.core.Metrics.Holdings;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.Session;
import dev.gantry.core.Transport;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.BaseUnits;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;

/// A session's [Metrics] as meters of Micrometer: `new
/// SessionMeters(Session.shared()).bindTo(registry)`.
///
/// Needs `io.micrometer:micrometer-core` on the class path; nothing else of Gantry does. A registry
/// holds the session weakly.
public final class SessionMeters implements MeterBinder {
  private static final String TRANSPORT = "transport";
  private static final String OUTCOME = "outcome";

  private final Session session;

  /// Makes meters of a session, which they never close.
  public SessionMeters(Session session) {
    this.session = session;
  }

  @Override
  public void bindTo(MeterRegistry registry) {
    bindLoads(registry);
    bindSaves(registry);
    bindBatches(registry);
    bindHoldings(registry);
  }

  private void bindLoads(MeterRegistry registry) {
    counter("gantry.loads", metrics -> metrics.loads().completed())
        .description("Loads that ended")
        .tag(OUTCOME, "completed")
        .register(registry);
    counter("gantry.loads", metrics -> metrics.loads().failed())
        .description("Loads that ended")
        .tag(OUTCOME, "failed")
        .register(registry);
    counter("gantry.read.requests", metrics -> metrics.reads().requests())
        .description("Read requests of loads and batches")
        .register(registry);
    for (Transport transport : Transport.values()) {
      counter("gantry.read.bytes", metrics -> metrics.reads().bytes(transport))
          .description("Bytes that loads and batches read")
          .baseUnit(BaseUnits.BYTES)
          .tag(TRANSPORT, transport.toString())
          .register(registry);
    }
    cached("hot", metrics -> metrics.reads().hotBytes(), registry);
    cached("cold", metrics -> metrics.reads().coldBytes(), registry);
    cached("unknown", metrics -> metrics.reads().unknownBytes(), registry);
    counter("gantry.fallbacks", metrics -> metrics.reads().fallbacks())
        .description("Files that had to change their transport")
        .register(registry);
  }

  private void cached(String residency, ToLongFunction<Metrics> bytes, MeterRegistry registry) {
    counter("gantry.read.cache.bytes", bytes)
        .description("Bytes read, by whether they were in the page cache")
        .baseUnit(BaseUnits.BYTES)
        .tag("residency", residency)
        .register(registry);
  }

  private void bindSaves(MeterRegistry registry) {
    counter("gantry.saves", metrics -> metrics.saves().completed())
        .description("Saves that ended")
        .tag(OUTCOME, "completed")
        .register(registry);
    counter("gantry.saves", metrics -> metrics.saves().failed())
        .description("Saves that ended")
        .tag(OUTCOME, "failed")
        .register(registry);
    counter("gantry.save.files", metrics -> metrics.saves().files())
        .description("Files that were committed")
        .register(registry);
    for (Transport transport : Transport.values()) {
      counter("gantry.save.bytes", metrics -> metrics.saves().bytes(transport))
          .description("Bytes that saves wrote")
          .baseUnit(BaseUnits.BYTES)
          .tag(TRANSPORT, transport.toString())
          .register(registry);
    }
  }

  private void bindBatches(MeterRegistry registry) {
    counter("gantry.batches", metrics -> metrics.batches().completed())
        .description("Batches that datasets handed over")
        .register(registry);
    FunctionTimer.builder(
            "gantry.batch.wait",
            session,
            now -> now.metrics().batches().waits(),
            now -> now.metrics().batches().waited().toNanos(),
            TimeUnit.NANOSECONDS)
        .description("How long consumers waited for a batch that was not ready")
        .register(registry);
  }

  private void bindHoldings(MeterRegistry registry) {
    gauge("gantry.files.open", Holdings::openFiles)
        .description("Files that are open")
        .register(registry);
    gauge("gantry.slabs", Holdings::slabs)
        .description("Pieces of memory that are allocated")
        .register(registry);
    memory("host", Holdings::hostBytes, registry);
    memory("mapped", Holdings::mappedBytes, registry);
    memory("pinned", Holdings::pinnedBytes, registry);
    memory("device", Holdings::deviceBytes, registry);
    mostUsed("host", MemoryUse::hostBytes, registry);
    mostUsed("pinned", MemoryUse::pinnedBytes, registry);
    mostUsed("device", MemoryUse::deviceBytes, registry);
    gauge("gantry.registrations", Holdings::registrations)
        .description("Pieces of memory that cuFile knows")
        .register(registry);
  }

  private void memory(String kind, ToLongFunction<Holdings> bytes, MeterRegistry registry) {
    gauge("gantry.memory.used", bytes)
        .description("Memory that the process holds by Gantry")
        .baseUnit(BaseUnits.BYTES)
        .tag("kind", kind)
        .register(registry);
  }

  private void mostUsed(String kind, ToLongFunction<MemoryUse> bytes, MeterRegistry registry) {
    Gauge.builder("gantry.memory.most", session, now -> bytes.applyAsLong(now.metrics().mostUsed()))
        .description("The most memory that was in use by Gantry at once")
        .baseUnit(BaseUnits.BYTES)
        .tag("kind", kind)
        .register(registry);
  }

  private FunctionCounter.Builder<Session> counter(String name, ToLongFunction<Metrics> count) {
    return FunctionCounter.builder(name, session, now -> count.applyAsLong(now.metrics()));
  }

  private Gauge.Builder<Session> gauge(String name, ToLongFunction<Holdings> value) {
    return Gauge.builder(name, session, now -> value.applyAsLong(now.metrics().holdings()));
  }
}

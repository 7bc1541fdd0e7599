// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.micrometer;

import dev.gantry.core.Metrics;
import dev.gantry.core.MisuseException;
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
import org.jspecify.annotations.Nullable;

/// A session's [Metrics] as meters of Micrometer: `new
/// SessionMeters(Session.shared()).bindTo(registry)`.
///
/// Needs `io.micrometer:micrometer-core` on the class path; nothing else of Gantry does. A registry
/// holds the session weakly.
public final class SessionMeters implements MeterBinder {
  private final Session session;

  /// Makes meters of a session, which they never close.
  public SessionMeters(Session session) {
    this.session = MisuseException.requireGiven("session", session);
  }

  @Override
  public void bindTo(MeterRegistry registry) {
    Meters meters = new Meters(session, MisuseException.requireGiven("registry", registry));
    String loads = "Loads that ended";
    meters.count("gantry.loads", loads, now -> now.loads().completed(), "outcome", "completed");
    meters.count("gantry.loads", loads, now -> now.loads().failed(), "outcome", "failed");
    meters.count(
        "gantry.read.requests",
        "Read requests of loads and batches",
        now -> now.reads().requests());
    String cached = "Bytes read, by whether they were in the page cache";
    String cache = "gantry.read.cache.bytes";
    meters.count(cache, cached, now -> now.reads().hotBytes(), "residency", "hot");
    meters.count(cache, cached, now -> now.reads().coldBytes(), "residency", "cold");
    meters.count(cache, cached, now -> now.reads().unknownBytes(), "residency", "unknown");
    meters.count(
        "gantry.fallbacks",
        "Files that had to change their transport",
        now -> now.reads().fallbacks());
    String saves = "Saves that ended";
    meters.count("gantry.saves", saves, now -> now.saves().completed(), "outcome", "completed");
    meters.count("gantry.saves", saves, now -> now.saves().failed(), "outcome", "failed");
    meters.count("gantry.save.files", "Files that were committed", now -> now.saves().files());
    for (Transport transport : Transport.values()) {
      String[] tag = {"transport", transport.toString()};
      String read = "Bytes that loads and batches read";
      meters.count("gantry.read.bytes", read, now -> now.reads().bytes(transport), tag);
      String saved = "Bytes that saves wrote";
      meters.count("gantry.save.bytes", saved, now -> now.saves().bytes(transport), tag);
    }
    meters.count(
        "gantry.batches", "Batches that datasets handed over", now -> now.batches().completed());
    FunctionTimer.builder(
            "gantry.batch.wait",
            session,
            now -> now.metrics().batches().waits(),
            now -> now.metrics().batches().waited().toNanos(),
            TimeUnit.NANOSECONDS)
        .description("How long consumers waited for a batch that was not ready")
        .register(registry);
    meters.gauge("gantry.files.open", "Files that are open", now -> now.holdings().openFiles());
    meters.gauge(
        "gantry.slabs", "Pieces of memory that are allocated", now -> now.holdings().slabs());
    meters.gauge(
        "gantry.registrations",
        "Pieces of memory that cuFile knows",
        now -> now.holdings().registrations());
    String used = "Memory that the process holds by Gantry";
    String memory = "gantry.memory.used";
    meters.gauge(memory, used, now -> now.holdings().hostBytes(), "kind", "host");
    meters.gauge(memory, used, now -> now.holdings().mappedBytes(), "kind", "mapped");
    meters.gauge(memory, used, now -> now.holdings().pinnedBytes(), "kind", "pinned");
    meters.gauge(memory, used, now -> now.holdings().deviceBytes(), "kind", "device");
    String most = "The most memory that was in use by Gantry at once";
    String mostUsed = "gantry.memory.most";
    meters.gauge(mostUsed, most, now -> now.mostUsed().hostBytes(), "kind", "host");
    meters.gauge(mostUsed, most, now -> now.mostUsed().pinnedBytes(), "kind", "pinned");
    meters.gauge(mostUsed, most, now -> now.mostUsed().deviceBytes(), "kind", "device");
  }

  /// Makes the meters of a session in a registry.
  private record Meters(Session session, MeterRegistry registry) {
    /// @param tag the key and the value of the meter's tag, if it has one
    void count(String name, String description, ToLongFunction<Metrics> count, String... tag) {
      FunctionCounter.builder(name, session, now -> count.applyAsLong(now.metrics()))
          .description(description)
          .baseUnit(unit(name))
          .tags(tag)
          .register(registry);
    }

    void gauge(String name, String description, ToLongFunction<Metrics> value, String... tag) {
      Gauge.builder(name, session, now -> value.applyAsLong(now.metrics()))
          .description(description)
          .baseUnit(unit(name))
          .tags(tag)
          .register(registry);
    }

    private static @Nullable String unit(String name) {
      return name.endsWith(".bytes") || name.startsWith("gantry.memory.") ? BaseUnits.BYTES : null;
    }
  }
}

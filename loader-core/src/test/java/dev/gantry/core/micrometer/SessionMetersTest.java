// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.micrometer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class SessionMetersTest {
  private static final int LENGTH = 1 << 20;

  @TempDir Path folder;
  private final MeterRegistry registry = new SimpleMeterRegistry();

  @Test
  void aMissingSessionOrRegistryIsNamed() {
    assertThatThrownBy(() -> new SessionMeters(null))
        .isInstanceOf(MisuseException.class)
        .hasMessage("session must be given (was null)");
    assertThatThrownBy(() -> new SessionMeters(GantrySession.shared()).bindTo(null))
        .isInstanceOf(MisuseException.class)
        .hasMessage("registry must be given (was null)");
  }

  @Test
  void metersFollowTheSession() {
    Path file = TestFiles.write(folder.resolve("weights"), 1, LENGTH);
    try (GantrySession session = GantrySession.open()) {
      new SessionMeters(session).bindTo(registry);
      assertThat(registry.get("gantry.loads").tag("outcome", "completed").functionCounter().count())
          .isZero();
      ExtentRequest whole = new ExtentRequest(new Extent(file, 0, LENGTH), 8);
      try (Loaded _ =
          session.load(
              List.of(whole),
              Device.HOST,
              TransferOptions.defaults().withCachePolicy(CachePolicy.BUFFERED))) {
        assertThat(registry.get("gantry.memory.used").tag("kind", "host").gauge().value())
            .isEqualTo((double) LiveResources.snapshot().hostBytes());
        assertThat(registry.get("gantry.memory.most").tag("kind", "host").gauge().value())
            .isEqualTo((double) LiveResources.mostUsed().hostBytes())
            .isGreaterThanOrEqualTo(LENGTH);
      }
      assertThat(registry.get("gantry.loads").tag("outcome", "completed").functionCounter().count())
          .isEqualTo(1);
      assertThat(
              registry.get("gantry.read.bytes").tag("transport", "host").functionCounter().count())
          .isEqualTo(LENGTH);
      assertThat(
              registry
                  .get("gantry.read.cache.bytes")
                  .tag("residency", "hot")
                  .functionCounter()
                  .count())
          .isEqualTo(LENGTH);
      assertThat(registry.get("gantry.batch.wait").functionTimer().count()).isZero();
    }
  }

  /// The table of the docs has one row for each meter and tag.
  @Test
  void theDocsNameEveryMeter() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "observability.md"));
    try (GantrySession session = GantrySession.open()) {
      new SessionMeters(session).bindTo(registry);
    }
    assertThat(registry.getMeters())
        .hasSize(32)
        .allSatisfy(meter -> assertThat(page).contains(row(meter)));
  }

  private static String row(Meter meter) {
    Meter.Id id = meter.getId();
    String name = "| `" + id.getName() + "` |";
    List<String> keys = id.getTags().stream().map(Tag::getKey).toList();
    return keys.isEmpty() ? name + " |" : name + " `" + String.join("`, `", keys) + "` |";
  }
}

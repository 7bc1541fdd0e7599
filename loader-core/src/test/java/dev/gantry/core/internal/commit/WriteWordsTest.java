// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The arguments that a write accepts or refuses.
@ExtendWith(NoLeaks.class)
class WriteWordsTest {
  @TempDir Path folder;

  @Test
  void memoryOfOneThreadIsRefused() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment confined = arena.allocate(10);
      assertThatThrownBy(() -> new Memory.OnHost(confined))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("confined");
    }
  }

  @Test
  void deviceMemoryThatCannotBe() {
    Device.Cuda device = new Device.Cuda(0);
    assertThatThrownBy(() -> new Memory.OnDevice(device, -1, 1))
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> new Memory.OnDevice(device, 1, -1))
        .isInstanceOf(MisuseException.class);
  }

  @Test
  void filesThatCannotBe() {
    assertThatThrownBy(() -> new NewFile(Path.of("/"), List.of()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("/");
    Source half = new Memory.OnDevice(new Device.Cuda(0), 0, Long.MAX_VALUE / 2 + 1);
    assertThatThrownBy(() -> new NewFile(Path.of("file"), List.of(half, half)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("file");
    assertThat(new NewFile(Path.of("file"), List.of(half)).size()).isEqualTo(half.length());
  }

  @Test
  void optionsThatCannotBe() {
    WriteOptions options = WriteOptions.defaults();
    assertThatThrownBy(() -> options.withThreads(-1)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withRequestBytes(4095)).isInstanceOf(MisuseException.class);
  }

  @Test
  void memoryOfADeviceDoesNotGoByThePathOfTheCpu() {
    NewFile file =
        new NewFile(folder.resolve("file"), List.of(new Memory.OnDevice(new Device.Cuda(0), 0, 1)));
    try (GantrySession gantry = GantrySession.open()) {
      assertThatThrownBy(() ->
              gantry.write(List.of(file), WriteOptions.defaults().withTransport(Transport.HOST)))
          .isInstanceOf(DeviceUnavailableException.class)
          .hasMessageContaining("cuda:0");
    }
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void aClosedSessionWritesNothing() {
    GantrySession gantry = GantrySession.open();
    gantry.close();
    NewFile file = new NewFile(folder.resolve("file"), List.of());
    assertThatThrownBy(() -> gantry.write(List.of(file), WriteOptions.defaults()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("closed");
    assertThat(folder).isEmptyDirectory();
  }

  /// The longest name that file systems accept also has a temporary name.
  @Test
  void temporaryNamesAreKnownAndShort() {
    Path target = folder.resolve("x".repeat(255));
    Path temporary = TemporaryName.beside(target, true);
    assertThat(temporary.getParent()).isEqualTo(folder);
    assertThat(TemporaryName.is(temporary)).isTrue();
    assertThat(TemporaryName.beside(target, true)).isNotEqualTo(temporary);
    assertThat(TemporaryName.is(target)).isFalse();
    assertThat(TemporaryName.is(Path.of(".gantry-.tmp"))).isFalse();
    assertThat(TemporaryName.is(Path.of(".gantry-not-hexadecimal-.tmp"))).isFalse();
    assertThat(TemporaryName.is(Path.of("/"))).isFalse();
    try (GantrySession gantry = GantrySession.open()) {
      WriteReport _ =
          gantry.write(List.of(new NewFile(target, List.of())), WriteOptions.defaults());
    }
    assertThat(target).isEmptyFile();
  }
}

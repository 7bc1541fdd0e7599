// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A few bytes of a pickle that stand for very many values.
class StateDictTest {
  @TempDir Path folder;

  /// Returns lists that are nested `depth` times.
  private static PickleValue nested(int depth, int times) {
    PickleValue value = new PickleValue.Int(1);
    for (int i = 0; i < depth; i++) {
      value = new PickleValue.Items(Collections.nCopies(times, value));
    }
    return value;
  }

  @ParameterizedTest
  @CsvSource({"23, 2, too-many-values", "65, 1, too-deep"})
  void listsInOneAnotherAreBounded(int depth, int times, String kind) {
    Location file = Location.of(Path.of("file"));
    StateDict state = new StateDict(file, 0, new TorchTensors(file, (_, _) -> Optional.empty()));
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> state.add(nested(depth, times)));
    assertThat(fault.kind()).isEqualTo(kind);
  }

  /// As a key, such a reference would be hashed by a recursion that ends the thread's stack.
  @Test
  void referencesInOneAnotherAreRefused() throws IOException {
    byte[] pickle = "}NQQNs.".getBytes(StandardCharsets.ISO_8859_1);
    Location file = Location.of(Files.write(folder.resolve("pickle"), pickle));
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), file);
        PickleInput input = PickleInput.of(bytes, new Extent(file, 0, pickle.length))) {
      PickleReader reader = new PickleReader(input, _ -> true);
      assertThatThrownBy(reader::read)
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("offset 3: invalid-pickle: a reference refers to a reference");
    }
  }

  /// Old files name a storage by the device on which it was saved.
  @ParameterizedTest
  @ValueSource(strings = {"torch", "torch.storage", "torch.cuda"})
  void aStorageOfAnyDeviceHasItsType(String module) {
    assertThat(TorchTypes.storageType(new PickleValue.Global(module, "HalfStorage")))
        .contains("float16");
  }
}

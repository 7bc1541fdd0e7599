// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A few bytes of a pickle that stand for very many values.
class StateDictTest {
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

  /// Old files name a storage by the device on which it was saved.
  @ParameterizedTest
  @ValueSource(strings = {"torch", "torch.storage", "torch.cuda"})
  void aStorageOfAnyDeviceHasItsType(String module) {
    assertThat(TorchTypes.storageType(new PickleValue.Global(module, "HalfStorage")))
        .contains("float16");
  }
}

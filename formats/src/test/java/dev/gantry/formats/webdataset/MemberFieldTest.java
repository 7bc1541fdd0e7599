// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.webdataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class MemberFieldTest {
  static Stream<Function<String, MemberField>> kinds() {
    return Stream.of(
        extension -> MemberField.raw(extension, DType.U8, 1),
        MemberField::npy,
        MemberField::integer,
        extension -> MemberField.padded(extension, 10),
        extension -> MemberField.decoded(extension, (_, _, _) -> {}, DType.U8, 1));
  }

  /// Only the headers of members with the extension of NumPy arrays are indexed.
  @Test
  void anExtensionThatIsNotThatOfArraysIsRefusedForThem() {
    for (String extension : new String[] {"emb", "npy;emb", "xnpy"}) {
      assertThatThrownBy(() -> MemberField.npy(extension))
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "the extension of NumPy arrays must be npy, or end in .npy (was '"
                  + extension
                  + "')");
    }
    assertThat(MemberField.npy("emb.npy;npy").name()).isEqualTo("emb.npy");
  }

  @ParameterizedTest
  @MethodSource("kinds")
  void anExtensionThatNoMemberCanHaveIsRefused(Function<String, MemberField> kind) {
    for (String extension : new String[] {"", "jpg;", ".jpg", "folder/jpg"}) {
      assertThatThrownBy(() -> kind.apply(extension))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("an extension must be such as jpg");
    }
  }
}

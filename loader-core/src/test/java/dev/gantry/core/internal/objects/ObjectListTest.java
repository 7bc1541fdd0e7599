// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/// The pages of a service's list, in which a dataset must find all of its files.
class ObjectListTest {
  private static final Location FOLDER = Location.of("gs://bucket/a/");

  private final List<String> asked = new ArrayList<>();

  private List<String> keys(Function<String, ObjectService.Page> pages) {
    return ObjectStore.keys(
        FOLDER,
        "a/",
        after -> {
          asked.add(after);
          return pages.apply(after);
        });
  }

  @Test
  void keysOfOtherFoldersAndTheFolderItselfAreLeftOut() {
    List<String> keys = List.of("a/", "a/one", "b/two", "a/within/");
    assertThat(keys(_ -> new ObjectService.Page(keys, ""))).containsExactly("a/one");
  }

  @Test
  void aListThatGoesOnWhereItWasIsRefusedAtOnce() {
    assertThatThrownBy(() -> keys(_ -> new ObjectService.Page(List.of("a/one"), "1")))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("the service's list goes on where it was");
    assertThat(asked).containsExactly("", "1");
  }

  @Test
  void aListOfMorePagesThanAreAllowedIsRefused() {
    List<String> key = List.of("a/one");
    assertThat(keys(_ -> new ObjectService.Page(key, next(10_000)))).hasSize(10_000);
    asked.clear();
    assertThatThrownBy(() -> keys(_ -> new ObjectService.Page(key, next(10_001))))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("more than 10000 pages");
  }

  /// Returns the marker of the page after the one that was asked for last, if there are `pages`.
  private String next(int pages) {
    return asked.size() < pages ? String.valueOf(asked.size()) : "";
  }
}

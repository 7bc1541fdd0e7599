// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Tests lists with impossible answers of a server. A page is a number here: the page's only
/// entry, from which the token of the next page is made.
class S3ListTest {
  private static S3List<Integer, Integer> list() {
    return new S3List<>(
        Location.of("s3://bucket/folder"), List::of, page -> "after " + page, entry -> entry >= 0);
  }

  @Test
  void eachPageThatGoesOnIsTaken() {
    S3List<Integer, Integer> list = list();
    list.accept(1);
    list.accept(2);
    assertThat(list.found()).containsExactly(1, 2);
    assertThatThrownBy(() -> list.accept(2))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("the server's list goes on where it was");
  }

  @Test
  void aListOfOnePageNamesNoNextOne() {
    S3List<Integer, Integer> list =
        new S3List<>(Location.of("s3://bucket/folder"), List::of, _ -> "", entry -> entry >= 0);
    list.accept(1);
    assertThat(list.found()).containsExactly(1);
  }

  @Test
  void aListThatDoesNotEndIsRefused() {
    S3List<Integer, Integer> list = list();
    for (int page = 0; page < 100_000; page++) {
      list.accept(page);
    }
    assertThatThrownBy(() -> list.accept(100_000))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("has more than 100000 pages");
  }

  @Test
  void anEntryThatLiesElsewhereIsRefused() {
    S3List<Integer, Integer> list = list();
    assertThatThrownBy(() -> list.accept(-1))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("has an entry that lacks a part, or lies elsewhere");
    assertThat(list.found()).isEmpty();
  }
}

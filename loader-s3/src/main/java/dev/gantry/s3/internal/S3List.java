// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;

/// The entries of a server's list, which comes in pages. The server is not trusted: each entry is
/// checked, and the list must end. Not thread-safe.
///
/// @param <P> the type of a page
/// @param <E> the type of an entry
final class S3List<P, E> implements Consumer<P> {
  private static final int MAX_PAGES = 100_000;

  private final Location location;
  private final Function<P, List<E>> entries;
  private final Function<P, String> next;
  private final Predicate<E> right;
  private final List<E> found = new ArrayList<>();
  private String last = "";
  private int pages;

  /// @param location the location that is listed, for errors
  /// @param entries returns the entries of a page
  /// @param next returns the token by which a page names the next page
  /// @param right whether an entry has all that it must have
  S3List(
      Location location,
      Function<P, List<E>> entries,
      Function<P, String> next,
      Predicate<E> right) {
    this.location = location;
    this.entries = entries;
    this.next = next;
    this.right = right;
  }

  /// Returns the entries of all pages that have arrived.
  List<E> found() {
    return found;
  }

  @Override
  public void accept(P page) {
    String following = next.apply(page);
    if (pages > 0 && following.equals(last)) {
      throw wrong("goes on where it was");
    }
    last = following;
    if (++pages > MAX_PAGES) {
      throw wrong("has more than " + MAX_PAGES + " pages");
    }
    for (E entry : entries.apply(page)) {
      if (!right.test(entry)) {
        throw wrong("has an entry that lacks a part, or lies elsewhere");
      }
      found.add(entry);
    }
  }

  private TransferException wrong(String what) {
    return new TransferException(
        "LIST", location.toString(), new Failure.Remote(0, "the server's list " + what));
  }
}

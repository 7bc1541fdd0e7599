// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.internal.http.RequestHeaders;
import java.net.URI;
import java.util.List;

/// How a service for objects is asked, and what it needs to know who asks. Thread-safe.
interface ObjectService extends RequestHeaders {
  /// The address of an object.
  URI address(ObjectName name);

  /// The address of a list of the objects in a folder, without those in folders within.
  ///
  /// @param after where the page before ended; empty for the first page
  URI list(ObjectName folder, String after);

  /// A part of a list.
  ///
  /// @param next where the next part begins; empty after the last one
  record Page(List<String> keys, String next) {}

  Page page(String answer);

  /// Returns the advice for a user whose request was refused with this status; empty if there is
  /// none.
  String advice(int status);
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.internal.http.RequestHeaders;
import java.net.URI;
import java.util.List;

/// Makes the addresses of requests to an object storage service, and the headers that authenticate
/// them. Thread-safe.
interface ObjectService extends RequestHeaders {
  /// Returns the address of an object.
  URI address(ObjectName name);

  /// Returns the address that lists the objects in a folder, but not in its subfolders.
  ///
  /// @param after the marker at which the page before ended; empty for the first page
  URI list(ObjectName folder, String after);

  /// One page of a list.
  ///
  /// @param next the marker for [#list] at which the next page begins; empty after the last page
  record Page(List<String> keys, String next) {}

  Page page(String answer);

  /// Returns the advice for a user whose request was refused with this status; empty if there is
  /// none.
  String advice(int status);
}

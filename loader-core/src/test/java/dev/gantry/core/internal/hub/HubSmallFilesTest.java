// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

/// Files that are fetched whole when they are opened.
class HubSmallFilesTest extends HubStoreTest {
  @Override
  long smallBytes() {
    return 1L << 30;
  }
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.JdkFiles;

class JdkStoreTest extends PosixStoreTest {
  @Override
  FileCalls calls() {
    return JdkFiles.INSTANCE;
  }
}

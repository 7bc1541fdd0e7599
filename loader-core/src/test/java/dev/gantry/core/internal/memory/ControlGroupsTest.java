// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The memory limits in the trees of cgroup v1 and v2, in the kernel's formats.
class ControlGroupsTest {
  private static final String CONTENT = "anon 1\nfile 300\nfile_mapped 7\nshmem 50\nshmem_thp 9\n";
  private static final String CONTENT_1 =
      "cache 1\nshmem 2\ninactive_file 3\ntotal_cache 300\ntotal_shmem 50\n";
  private static final String NO_LIMIT_1 = "9223372036854771712";

  @TempDir Path mount;

  private long left(String... groups) throws IOException {
    return ControlGroups.leftBytes(mount, List.of(groups));
  }

  private void group(String folder, String most, long used) throws IOException {
    Path group = Files.createDirectories(mount.resolve(folder));
    Files.writeString(group.resolve("memory.max"), most + "\n");
    Files.writeString(group.resolve("memory.current"), used + "\n");
    Files.writeString(group.resolve("memory.stat"), CONTENT);
  }

  private void group1(String folder, String most, long used) throws IOException {
    Path group = Files.createDirectories(mount.resolve("memory").resolve(folder));
    Files.writeString(group.resolve("memory.limit_in_bytes"), most + "\n");
    Files.writeString(group.resolve("memory.usage_in_bytes"), used + "\n");
    Files.writeString(group.resolve("memory.stat"), CONTENT_1);
  }

  @Test
  void theTightestOfNestedGroupsLimits() throws IOException {
    group("outer/inner", "max", 100);
    group("outer", "1000", 800);
    assertThat(left("0::/outer/inner")).isEqualTo(1000 - (800 - (300 - 50)));
    group("outer/inner", "200", 100);
    assertThat(left("0::/outer/inner")).isEqualTo(200 - 100 + 250);
    group("outer", "1000", 1300);
    assertThat(left("0::/outer/inner")).isZero();
    assertThat(left("0::/../elsewhere")).isEqualTo(Long.MAX_VALUE);
    group("", "700", 500);
    assertThat(left("0::/../elsewhere")).isEqualTo(700 - 500 + 250);
  }

  @Test
  void theFirstVersionsLimitsCount() throws IOException {
    group1("docker/abc", NO_LIMIT_1, 100);
    group1("docker", "1000", 800);
    group1("", NO_LIMIT_1, 5000);
    String[] groups = {"12:cpu,cpuacct:/", "9:memory:/docker/abc", "0::/"};
    assertThat(left(groups)).isEqualTo(1000 - (800 - (300 - 50)));
    group1("docker/abc", "200", 100);
    assertThat(left(groups)).isEqualTo(200 - 100 + 250);
    assertThat(left("9:pids,memory:/docker/abc")).isEqualTo(200 - 100 + 250);
    assertThat(left("9:cpu:/docker/abc")).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void aContainerSeesItsOwnGroupAsTheRoot() throws IOException {
    group1("", "700", 500);
    assertThat(left("4:memory:/docker/of/the/host")).isEqualTo(700 - 500 + 250);
  }

  @Test
  void aGroupWithoutALimitLeavesEverything() throws IOException {
    for (String none : List.of(NO_LIMIT_1, "18446744073709551615", "9223372036854775807")) {
      group1("", none, 100);
      assertThat(left("4:memory:/")).isEqualTo(Long.MAX_VALUE);
    }
    group("", "max", 100);
    assertThat(left("0::/")).isEqualTo(Long.MAX_VALUE);
    assertThat(left()).isEqualTo(Long.MAX_VALUE);
  }
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.MisuseException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;

/// Finds the stores and formats that jars register as services. In containers that give each
/// program a class loader of its own, also finds those of the program.
public final class Services {
  private Services() {}

  /// Makes one instance of each registered class. Classes that the class loader of `type` finds
  /// come first.
  ///
  /// @throws MisuseException if a registered class does not exist, or cannot be made; the message names it
  public static <T> List<T> find(Class<T> type) {
    Map<String, T> found = new LinkedHashMap<>();
    try {
      add(ServiceLoader.load(type, type.getClassLoader()), found);
      ClassLoader program = Thread.currentThread().getContextClassLoader();
      if (program != null && sees(program, type)) {
        add(ServiceLoader.load(type, program), found);
      }
    } catch (ServiceConfigurationError e) {
      MisuseException wrong =
          new MisuseException("a file in META-INF/services is wrong: " + e.getMessage());
      wrong.initCause(e);
      throw wrong;
    }
    return List.copyOf(found.values());
  }

  private static <T> void add(ServiceLoader<T> services, Map<String, T> found) {
    services.stream()
        .forEach(service -> found.computeIfAbsent(service.type().getName(), _ -> service.get()));
  }

  /// Whether a class loader resolves the name of this class to this class, and not to another
  /// class of the same name.
  private static boolean sees(ClassLoader loader, Class<?> type) {
    try {
      return type.equals(Class.forName(type.getName(), false, loader));
    } catch (ClassNotFoundException _) {
      return false;
    }
  }
}

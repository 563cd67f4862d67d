/* Marks what the shared library offers to others: all other symbols are hidden. */
#ifndef REFNPU_EXPORT_H_
#define REFNPU_EXPORT_H_

#define REFNPU_API __attribute__((visibility("default")))

#endif /* REFNPU_EXPORT_H_ */
